import { expect, it } from 'vitest'
import { GzipChunks } from '../../../../../src/relay/edge/transport/gzip.ts'

const lines = Buffer.alloc(1_000_000, 'line\n')

// That its parts are a complete answer is in integration/compressed-answers.test.ts.
it.each(['compress', 'finish'] as const)('the wait of %s ends when the client is gone', async (step) => {
  const gzip = new GzipChunks()
  await gzip.compress(lines)
  const waiting = step === 'compress' ? gzip.compress(lines) : gzip.finish()
  gzip.close()
  await expect(waiting).resolves.toBeInstanceOf(Buffer)
})
