import { readFileSync } from 'node:fs'

/** Read and not imported: package.json lies outside of src and of dist, one folder above either. */
const manifest: { readonly version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

export const { version } = manifest
/** For bug reports, which need both. */
export const versionText = `${version} (Node ${process.versions.node})`
