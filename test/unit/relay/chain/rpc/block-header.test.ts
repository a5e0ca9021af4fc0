import { describe, expect, it } from 'vitest'
import { Header } from '../../../../../src/relay/chain/rpc/block-header.ts'
import { blockHash, header } from '../node-json.ts'

describe('a header', () => {
  it('may lack number and hash while its block is being built', () => {
    for (const absent of [null, undefined])
      expect(Header.parse({ ...header(5), number: absent, hash: absent })).toMatchObject({
        ...{ number: null, hash: null, parentHash: blockHash(4) },
      })
  })

  it.each([null, 'block', { ...header(5), number: 'five' }, { ...header(5), hash: '0x12' }])('is not %j', (value) => {
    expect(Header.safeParse(value).success).toBe(false)
  })
})
