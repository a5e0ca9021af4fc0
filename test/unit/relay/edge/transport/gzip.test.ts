import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { GzipChunks } from '../../../../../src/relay/edge/transport/gzip.ts'

const lines = Buffer.alloc(1_000_000, 'line\n')

describe('an answer that is compressed in chunks', () => {
  it('is complete', async () => {
    const gzip = new GzipChunks()
    const parts = [await gzip.compress(lines), await gzip.compress(lines), await gzip.finish()]
    expect(gunzipSync(Buffer.concat(parts)).length).toBe(2 * lines.length)
  })

  it.each(['compress', 'finish'] as const)('ends the wait of %s when the client is gone', async (step) => {
    const gzip = new GzipChunks()
    await gzip.compress(lines)
    const waiting = step === 'compress' ? gzip.compress(lines) : gzip.finish()
    gzip.close()
    await expect(waiting).resolves.toBeInstanceOf(Buffer)
  })
})
