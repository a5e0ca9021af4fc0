import { CallError } from './json-rpc.ts'

export const createRevertError = () => new CallError(3, 'execution reverted')

/** Decodes a call; an unknown function or argument reverts. */
export const decodeOrRevert = <Decoded>(decode: () => Decoded): Decoded => {
  try {
    return decode()
  } catch {
    throw createRevertError()
  }
}
