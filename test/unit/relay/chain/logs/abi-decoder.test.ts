import fc from 'fast-check'
import { decodeAbiParameters, parseAbiParameters } from 'viem/utils'
import { expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { abiDecoder } from '../../../../../src/relay/chain/logs/abi-decoder.ts'
import { words } from '../node-json.ts'

it('numbers are decoded by hand as viem decodes them, and only from data of their exact length', () => {
  const number = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), fc.constantFrom(0n, 1n, 2n ** 64n, 2n ** 255n))
  const dataTexts = fc
    .tuple(fc.array(number, { maxLength: 4 }), fc.constantFrom('', '00', 'ff'.repeat(31)), fc.boolean())
    .map(([values, rest, isUpperCase]): Hex => {
      const digits = words(...values).slice(2) + rest
      return `0x${isUpperCase ? digits.toUpperCase() : digits}`
    })
  for (const types of ['uint256', 'uint256, uint256', 'uint256, uint256, uint256']) {
    const parameters = parseAbiParameters(types)
    const decode = abiDecoder(parameters)
    fc.assert(
      fc.property(dataTexts, (data) => {
        const isExact = data.length === 2 + parameters.length * 64
        expect(decode(data)).toEqual(isExact ? decodeAbiParameters(parameters, data) : null)
      }),
    )
  }
  expect(abiDecoder([])('0x')).toEqual([])
  expect(abiDecoder([])('0x00')).toBeNull()
})
