"""Building blocks of HTML pages and LaTeX tables: escaped elements, page frame, tables, colours."""
