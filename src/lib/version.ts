import { readFileSync } from 'node:fs'

/** Read, not imported: package.json is in the folder above src and dist. */
const manifest: { readonly version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

export const { version } = manifest
export const versionText = `${version} (Node ${process.versions.node})`
