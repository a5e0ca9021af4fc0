import { describe, expect, it } from 'vitest'
import { Header } from '../../../../../src/relay/chain/rpc/block-header.ts'
import { blockHash, header } from '../node-json.ts'

describe('a header', () => {
  it('may lack number and hash while its block is being built', () => {
    expect(Header.parse({ ...header(5), number: null, hash: null })).toMatchObject({ number: null, hash: null })
    const { number: _number, hash: _hash, ...bare } = header(5)
    expect(Header.parse(bare)).toMatchObject({ number: null, hash: null, parentHash: blockHash(4) })
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'block'],
    ['with a number that is not hex', { ...header(5), number: 'five' }],
    ['with a hash that is too short', { ...header(5), hash: '0x12' }],
  ])('is refused when it is %s', (_, value) => {
    expect(Header.safeParse(value).success).toBe(false)
  })
})
