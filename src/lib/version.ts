import manifest from '../../package.json' with { type: 'json' }

export const { version } = manifest
export const versionText = `${version} (Node ${process.versions.node})`
