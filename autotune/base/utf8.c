#include "utf8.h"

#include <stdbool.h>
#include <string.h>

size_t plim_utf8_decode(const unsigned char *at, size_t left, uint32_t *code)
{
    static const struct form {
        unsigned char mask, lead;
        size_t length;
        uint32_t first; /* smallest code point that needs this form */
    } forms[] = {
        {0x80, 0x00, 1, 0},
        {0xe0, 0xc0, 2, 0x80},
        {0xf0, 0xe0, 3, 0x800},
        {0xf8, 0xf0, 4, 0x10000},
    };
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
        if ((at[0] & forms[f].mask) != forms[f].lead) continue;
        if (forms[f].length > left) return 0;
        *code = at[0] & (unsigned char)~forms[f].mask;
        for (size_t i = 1; i < forms[f].length; i++) {
            if ((at[i] & 0xc0) != 0x80) return 0;
            *code = *code << 6 | (at[i] & 0x3f);
        }
        bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
        return *code < forms[f].first || surrogate || *code > 0x10ffff ? 0 : forms[f].length;
    }
    return 0;
}

void plim_utf8_trim(char *text)
{
    size_t length = strlen(text), start = length; /* of the last character */
    uint32_t code;
    if (!length) return;
    do start--;
    while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80 && length - start < 4);
    bool is_lead = ((unsigned char)text[start] & 0xc0) == 0xc0;
    if (is_lead && !plim_utf8_decode((const unsigned char *)text + start, length - start, &code))
        text[start] = '\0';
}
