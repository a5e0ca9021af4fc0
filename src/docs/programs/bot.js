import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'stocktape/client'

const file = 'AAPLc.position'
const updates = connect('http://127.0.0.1:8080').updates('AAPLc', {
  store: {
    load: () => (existsSync(file) ? readFileSync(file, 'utf8') : null),
    save: (position) => {
      // Renamed, so that a crash leaves a whole position.
      writeFileSync(`${file}.new`, position)
      renameSync(`${file}.new`, file)
    },
  },
})
for await (const update of updates) {
  if (update.type === 'transfer') console.log(update.time, update.symbol, update.amount, update.reference_value)
  if (update.type === 'retract') console.error('did not happen:', update.key)
  if (update.type === 'gap') console.error('gap:', update.reason, 'after', update.after, 'through', update.through, update.backfill ?? '')
}
