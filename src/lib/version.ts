import { readFileSync } from 'node:fs'

/** Content of package.json, which is in the folder that contains `src` and `dist`, so this path is right in both. */
const manifest: { readonly version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

export const { version } = manifest
export const versionText = `${version} (Node ${process.versions.node})`
