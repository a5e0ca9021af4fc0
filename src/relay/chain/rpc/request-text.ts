import { getOrAdd } from '../../../lib/bounded-map.ts'

/** The JSON text of a list with more addresses is kept, since many requests contain this list. */
const LONG_LIST = 1_000

const texts = new WeakMap<readonly unknown[], string>()

export type JsonRpcRequest = {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

export const requestText = (payload: JsonRpcRequest | readonly JsonRpcRequest[]): string =>
  'id' in payload ? oneRequestText(payload) : `[${payload.map(oneRequestText).join()}]`

function oneRequestText(request: JsonRpcRequest): string {
  const filter = request.params.find(hasLongList)
  if (!filter) return JSON.stringify(request)
  const text = getOrAdd(texts, filter.address, () => JSON.stringify(filter.address))
  const params = request.params.map((param) => (param === filter ? { ...filter, address: null } : param))
  return JSON.stringify({ ...request, params }).replace('"address":null', () => `"address":${text}`)
}

const hasLongList = (param: unknown): param is { readonly address: readonly unknown[] } =>
  typeof param === 'object' &&
  param !== null &&
  'address' in param &&
  Array.isArray(param.address) &&
  param.address.length > LONG_LIST
