import { decodeAbiParameters, parseAbiParameters } from 'viem/utils'
import type { DevnetLog } from '../../../src/devnet/chain/chain-types.ts'

/** Published name and data types of each event of a token or a feed, by topic. */
const eventsByTopic: Readonly<Record<string, readonly [name: string, data: string]>> = {
  '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef': ['Transfer', 'uint256'],
  '0x6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8': ['Memo', ''],
  '0xa9aec5d8b86e2fa2fd6ac3af62f2622e3dfdab1967d4cbbb56a5df7d74cb887c': ['Seized', 'uint256'],
  '0x3e849708b13f20dd0b87a503523c305e7604cd7e8f855e7a5ebe21397dfd7146': ['Paused', 'uint8[]'],
  '0x086a815e5123cf1af5cb7a82f8b052bf96c622204c98b2f4f9782bf77f753c57': ['Unpaused', 'uint8[]'],
  '0x4dbe4840d7465bd162f67814cea0b519567a2e0e578bcde61e7f4ced361e5a3d': ['MultiplierUpdated', 'uint256'],
  '0x2205df4534432b2f60654a3fdb48737ffdaf3e9edb1a498bd985bc026b15b055': ['UIMultiplierUpdated', 'uint256, uint256, uint256'],
  '0x883856335ba5f60c18b9817c4505d3c7d3f6223dcf39516b30c508c46a5e1cad': ['UIMultiplierUpdateCancelled', 'uint256, uint256'],
  '0xccebf8218a62875909564adef86a6f4df81503cb617221e793357d62f8e813f7': ['Announcement', 'string, string, string'],
  '0x96d64dafe2c790596430196b982ad1da3221cb3b0f4e6e2df77f2e4f71a90037': ['EndAnnouncement', 'string'],
  '0xd7bb345be29e78d635203d40fe0567e7ef19d5cd5cc5fcd25f768b8063e82aa1': ['ExtraMetadataUpdated', 'string, string'],
  '0x74321da206c1b9fa34367f7ece59ca49371dcd13820b9a5c3767ae1ecceed51a': ['NameUpdated', 'string'],
  '0x64e8b5c6dcea43dd79766bb3b8af7c45968d12b68c960cf2da23856f34d598d4': ['SymbolUpdated', 'string'],
  '0xa5d4097edda6d87cb9329af83fb3712ef77eeb13738ffe43cc35a4ce305ad962': ['ContractURIUpdated', ''],
  '0x0a6387c9ea3628b88a633bb4f3b151770f70085117a15f9bf3787cda53f13d31': ['EIP712DomainChanged', ''],
  '0x6d14f44808ce024f263432bc38d019a9951fbe674e9898b54844dbc8dc09c23a': ['SupplyCapUpdated', 'uint256, uint256'],
  '0xc797025feeeaf2cd924c99e9205acb8ec04d5cad21c41ce637a38fb6dee6016a': [
    'NewTransmission',
    'int192, address, uint32, int192[], bytes, int192, bytes32, uint40',
  ],
  '0x0109fc6f55cf40689f02fbaad7af7fe7bbac8a3d2186600afc7d3e10cac60271': ['NewRound', 'uint256'],
  '0x0559884fd3a460db3073b7fc896cc77986f16e378210ded43186175bf646fc5f': ['AnswerUpdated', 'uint256'],
}

/** Decodes a log to the event's name, its indexed words and its data. */
export const decodeLog = ({ topics, data }: Pick<DevnetLog, 'topics' | 'data'>): readonly unknown[] => {
  const [topic = '', ...indexed] = topics
  const [name, types] = eventsByTopic[topic] ?? ['unknown', '']
  const values = types === '' ? [] : decodeAbiParameters(parseAbiParameters(types), data)
  return [name, ...indexed, ...values]
}

export const eventNames = (logs: readonly DevnetLog[]): readonly unknown[] => logs.map((log) => decodeLog(log)[0])
