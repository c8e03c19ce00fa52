'use strict';
/* Tables that can be sorted: by a click, or by Enter on a column's title. */
const units = {KiB: 1024, MiB: 1048576, GiB: 1073741824, TiB: 1099511627776};
function worth(cell) {
  const text = cell ? cell.textContent.trim() : '';
  const match = /^(-?[\d,]*\.?\d+)(?: x [\d,]+)?\s*([KMGT]iB|%)?/.exec(text);
  return match ? Number(match[1].replaceAll(',', '')) * (units[match[2]] || 1) : null;
}
function compare(a, b, column, sign) {
  const x = a.cells[column], y = b.cells[column], p = worth(x), q = worth(y);
  if (p !== null && q !== null) return sign * (p - q);
  if ((p === null) !== (q === null)) return p === null ? 1 : -1;
  return sign * (x ? x.textContent : '').localeCompare(y ? y.textContent : '');
}
for (const table of document.querySelectorAll('table.sort')) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = title.textContent;
    title.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = title.getAttribute('aria-sort') !== 'descending' && title.classList.contains('n') ||
        title.getAttribute('aria-sort') === 'ascending';
      for (const other of titles) other.removeAttribute('aria-sort');
      title.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...table.tBodies[0].rows].sort((a, b) => compare(a, b, column, down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
