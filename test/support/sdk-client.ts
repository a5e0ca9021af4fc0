import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from '../../src/sdk/client/index.ts'

/** The SDK as a client that prints what it yields. The argument fixes the transport. */
const file = process.env.STOCKTAPE_POSITION ?? 'client.position'
const store = {
  load: () => (existsSync(file) ? readFileSync(file, 'utf8') : null),
  save: (position: string) => {
    writeFileSync(`${file}.new`, position)
    renameSync(`${file}.new`, file)
  },
}
const transport = process.argv[2] === 'sse' ? 'sse' : 'websocket'
const relay = connect(process.env.STOCKTAPE_URL ?? '', process.argv[2] ? { transport } : {})
const minValue = process.argv[3]
for await (const item of relay.updates('AAPLc', { store, ...(minValue && { minValue }) }))
  if (!process.stdout.write(`${JSON.stringify(item)}\n`)) await once(process.stdout, 'drain')
