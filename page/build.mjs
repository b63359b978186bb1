// Bundle the page into the folder given as the first argument, by default the one that the wheel ships.
import { build } from "esbuild";

const outdir = process.argv[2] ?? new URL("../src/batkube/page/static", import.meta.url).pathname;
await build({
  entryPoints: { page: new URL("src/main.ts", import.meta.url).pathname },
  outdir,
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  legalComments: "none",
});
// The widget of notebooks: a module, which anywidget loads.
await build({
  entryPoints: { widget: new URL("src/widget.ts", import.meta.url).pathname },
  outdir,
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "esm",
  target: "es2022",
  legalComments: "none",
});
await build({
  entryPoints: { page: new URL("src/page.css", import.meta.url).pathname },
  outdir,
  charset: "utf8",
  legalComments: "none",
});
