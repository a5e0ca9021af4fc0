const entry = (folder: string) => ({ types: `./${folder}/index.d.ts`, default: `./${folder}/index.js` })

/** Modules that users of the package import, at their places in dist. */
export const packageExports = {
  '.': entry('client'),
  './client': entry('client'),
  './react': entry('react'),
  './react/bars': { types: './react/use-bars.d.ts', default: './react/use-bars.js' },
  './test': entry('testing'),
  './package.json': './package.json',
}
