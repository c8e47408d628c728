// Bundles src/ into dist/page.html: one file that needs nothing else. `node build.mjs --watch` rebuilds on change.
import { build, context } from 'esbuild';
import { readFile, writeFile } from 'node:fs/promises';

const here = new URL('.', import.meta.url);
const read = (path) => readFile(new URL(path, here), 'utf8');

const page = {
  name: 'page',
  setup(build) {
    build.onEnd(async (result) => {
      if (result.errors.length > 0) return;
      const out = Object.fromEntries(result.outputFiles.map((file) => [file.path.split('.').pop(), file.text]));
      // A function as the replacement, because bundled code may hold `$&`; an end of script must not appear inside.
      const html = (await read('src/page.html'))
        .replace('/*STYLE*/', () => out.css.trim())
        .replace('/*SCRIPT*/', () => out.js.trim().replaceAll('</script', '<\\/script'));
      await writeFile(new URL('dist/page.html', here), html);
      console.log(`ui/dist/page.html: ${Math.round(html.length / 1024)} KiB`);
    });
  },
};

const options = {
  entryPoints: [new URL('src/main.ts', here).pathname],
  bundle: true,
  minify: true,
  write: false,
  outdir: 'out',
  format: 'iife',
  target: 'es2020',
  charset: 'utf8',
  legalComments: 'inline',
  logLevel: 'warning',
  plugins: [page],
};

if (process.argv.includes('--watch')) await (await context(options)).watch();
else await build(options);
