"""The faults that scripts/mutate puts into C, and where it puts none: test_c_mutants.py FOLDER_OF_SCRIPTS"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import c_mutants  # noqa: E402


def changes(text):
    """line -> the set of what that line becomes."""
    found = {}
    for mutant in c_mutants.find(text):
        found.setdefault(mutant.line, set()).add(c_mutants.apply(text, mutant).split('\n')[mutant.line - 1].strip())
    return found


def of_body(statement):
    return changes(f'static int f(int a)\n{{\n    {statement}\n}}\n').get(3, set())


class CMutants(unittest.TestCase):
    def test_operators(self):
        self.assertEqual(of_body('return a < b;'), {'return a <= b;'})
        self.assertEqual(of_body('return a == b && c;'), {'return a != b && c;', 'return a == b || c;'})
        self.assertEqual(of_body('return a * b - c;'), {'return a / b - c;', 'return a * b + c;'})
        self.assertEqual(of_body('return a << b;'), {'return a >> b;'})

    def test_numbers_and_words(self):
        self.assertEqual(of_body('return 5;'), {'return 6;', 'return 4;'})
        self.assertEqual(of_body('return 0;'), {'return 1;'})
        self.assertEqual(of_body('return 1.5f;'), {'return 2.5f;', 'return 0.5f;'})
        self.assertEqual(of_body('return true;'), {'return false;'})

    def test_conditions(self):
        self.assertEqual(of_body('if (a) return b;'), {'if (!(a)) return b;'})
        self.assertEqual(of_body('return !a;'), {'return a;'})

    def test_statements(self):
        self.assertEqual(of_body('work(a, b);'), {';'})
        self.assertEqual(of_body('a[i] = b;'), {';'})
        self.assertEqual(of_body('if (a) work();'), {'if (!(a)) work();', 'if (a) ;'})
        self.assertIn('for (; a;) ;', of_body('for (; a;) work();'))

    def test_declarations_and_control_flow_stay(self):
        for statement in ('int b = a;', 'int64_t b = a;', 'struct x b = {a};', 'const char *b = a;', 'FILE *b = a;',
                          'return a;', 'return a ? b : c;', 'goto out;', '(void)a;', 'static char room[64];', 'for (i = a; b; i++) {}'):
            self.assertEqual(of_body(statement), set(), statement)

    def test_pointers_are_no_products(self):
        self.assertEqual(of_body('return *a + f(&b);'), {'return *a - f(&b);'})

    def test_nothing_in_comments_texts_and_directives(self):
        self.assertEqual(changes('#define A 1 + \\\n    2\n/* 3 < 4\n * true */\n// 5\nchar *a = "6 < 7", b = \'8\';\n'), {})

    def test_initializers_have_no_statements(self):
        self.assertEqual(changes('struct x y = {\n    .a = f(b),\n    .c = 2,\n};\n'), {3: {'.c = 3,', '.c = 1,'}})

    def test_lines_and_functions(self):
        text = 'static int first(void)\n{\n    return 1;\n}\n\nint second(int a)\n{\n    work(a,\n         2);\n    return 3;\n}\n'
        places = {(m.line, m.function) for m in c_mutants.find(text)}
        self.assertEqual(places, {(3, 'first'), (8, 'second'), (9, 'second'), (10, 'second')})
        removed = next(m for m in c_mutants.find(text) if m.new == ';')
        self.assertEqual(c_mutants.apply(text, removed).count('\n'), text.count('\n'))
        self.assertEqual(c_mutants.shown(text, removed), ('work(a, 2);', ';'))


if __name__ == '__main__':
    unittest.main()
