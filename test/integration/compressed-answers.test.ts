import { expect, it } from 'vitest'
import { openTestStack, transfer } from '../support/test-stack.ts'
import { listenLive } from './stream/stream-listeners.ts'

const paths = [
  '/v1/events?types=transfer',
  '/v1/events?types=transfer&format=ndjson&receipt=true',
  '/v1/tokenized-stocks',
  '/v1/snapshot?symbols=*',
  '/openapi.json',
  '/docs',
]
const withoutAges = (text: string) => text.replaceAll(/"age_s":\d+/g, '')

it('a finite answer of more than 1 KiB is compressed for a client that accepts it, and has the same text', async () => {
  const stack = await openTestStack()
  const listener = await listenLive(stack, 'ws', 'symbols=AAPLc')
  transfer(stack, 'AAPLc', 50)
  await listener.until(() => listener.messagesOf('transfer').length === 50)
  const ask = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(`${stack.relay.url}${path}`, { headers })
    const [encoding, vary, etag] = ['content-encoding', 'vary', 'etag'].map((name) => response.headers.get(name))
    return { status: response.status, encoding, vary, etag, text: await response.text() }
  }
  for (const path of paths) {
    const [plain, gzipped] = [
      await ask(path, { 'accept-encoding': 'identity' }),
      await ask(path, { 'accept-encoding': 'gzip, br' }),
    ]
    const { etag } = plain
    expect(plain, path).toMatchObject({ status: 200, encoding: null, vary: 'Accept-Encoding' })
    expect(gzipped, path).toMatchObject({ status: 200, encoding: 'gzip', vary: 'Accept-Encoding', etag })
    expect(plain.text.length, path).toBeGreaterThan(1_024)
    expect(withoutAges(gzipped.text), path).toBe(withoutAges(plain.text))
    if (etag) expect(await ask(path, { 'if-none-match': etag }), path).toMatchObject({ status: 304, vary: 'Accept-Encoding' })
  }
  const short = await ask('/v1/events?types=burn', { 'accept-encoding': 'gzip' })
  expect(short).toMatchObject({ status: 200, encoding: null, vary: 'Accept-Encoding' })
})
