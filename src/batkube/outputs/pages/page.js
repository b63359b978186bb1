"use strict";
// Sorting and filtering of tables marked class="sortable". Cells may carry data-value, what they are sorted by.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = text === "" ? NaN : Number(text);
    return { text, number };
  };
  const order = (a, b) => {
    const unknown = Number.isNaN(a.number) - Number.isNaN(b.number);
    if (unknown) return unknown;
    return Number.isNaN(a.number) ? a.text.localeCompare(b.text, "en", { numeric: true }) : a.number - b.number;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows, (row) => [key(row, column), row]);
      rows.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
      body.append(...rows.map((pair) => pair[1]));
    });
  });
  if (body.rows.length > 8) {
    const tools = document.createElement("p");
    const input = document.createElement("input");
    tools.className = "tools";
    input.type = "search";
    input.placeholder = "filter rows";
    input.setAttribute("aria-label", "Filter the rows of this table");
    tools.append(input);
    table.parentElement.before(tools);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }
}
