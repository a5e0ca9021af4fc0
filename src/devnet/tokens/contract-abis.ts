import type { Abi, AbiEvent, ContractEventName, ContractFunctionName } from 'viem'
import { encodeAbiParameters, encodeFunctionData, parseAbi, toEventSelector } from 'viem/utils'
import type { Hex } from '../../lib/hex.ts'
import type { EmittedLog } from '../chain/chain-types.ts'

export const tokenAbi = parseAbi([
  'function updateMultiplier(uint256 newMultiplier)',
  'function updateUIMultiplier(uint256 newMultiplier, uint256 effectiveAt)',
  'function cancelUIMultiplierUpdate()',
  'function announce(bytes[] internalCalls, string id, string description, string uri)',
  'function pause(uint8[] features)',
  'function unpause(uint8[] features)',
  'function seizeWithMemo(address from, address to, uint256 amount, bytes32 memo)',
  'function transferWithMemo(address to, uint256 amount, bytes32 memo)',
  'function updateName(string newName)',
  'function updateSymbol(string newSymbol)',
  'function updateContractURI(string newURI)',
  'function updateExtraMetadata(string key, string value)',
  'function updateSupplyCap(uint256 newSupplyCap)',
  'function multicall(bytes[] calls)',
  'event Memo(address indexed caller, bytes32 indexed memo)',
  'event Seized(address indexed caller, address indexed from, address indexed to, uint256 amount)',
  'event Paused(address indexed updater, uint8[] features)',
  'event Unpaused(address indexed updater, uint8[] features)',
  'event MultiplierUpdated(uint256 multiplier)',
  'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp)',
  'event UIMultiplierUpdateCancelled(uint256 cancelledMultiplier, uint256 cancelledEffectiveAt)',
  'event Announcement(address indexed caller, string id, string description, string uri)',
  'event EndAnnouncement(string id)',
  'event ExtraMetadataUpdated(string key, string value)',
  'event NameUpdated(address indexed updater, string newName)',
  'event SymbolUpdated(address indexed updater, string newSymbol)',
  'event ContractURIUpdated()',
  'event EIP712DomainChanged()',
  'event SupplyCapUpdated(address indexed updater, uint256 oldSupplyCap, uint256 newSupplyCap)',
])

export const aggregatorAbi = parseAbi([
  'event NewTransmission(uint32 indexed aggregatorRoundId, int192 answer, address transmitter, uint32 observationsTimestamp, int192[] observations, bytes observers, int192 juelsPerFeeCoin, bytes32 configDigest, uint40 epochAndRound)',
  'event NewRound(uint256 indexed roundId, address indexed startedBy, uint256 startedAt)',
  'event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt)',
])

type EventInput = AbiEvent['inputs'][number]

/** The values of an event, by the names in its signature. */
type EventArgs = Readonly<Record<string, unknown>>

/** Encodes a call of a token's function. */
export const tokenInput = (functionName: ContractFunctionName<typeof tokenAbi>, args: readonly unknown[] = []): Hex =>
  encodeFunctionData<Abi>({ abi: tokenAbi, functionName, args })

export const tokenLog = (address: Hex, event: ContractEventName<typeof tokenAbi>, args: EventArgs = {}): EmittedLog =>
  encodeLog(address, event, args)

export const aggregatorLog = (address: Hex, event: ContractEventName<typeof aggregatorAbi>, args: EventArgs): EmittedLog =>
  encodeLog(address, event, args)

const events = new Map(
  [...tokenAbi, ...aggregatorAbi].flatMap((item) => {
    if (item.type !== 'event') return []
    const inputs: readonly EventInput[] = item.inputs
    const [indexed, others] = [inputs.filter((input) => input.indexed), inputs.filter((input) => !input.indexed)]
    return [[item.name as string, { selector: toEventSelector(item), indexed, others }] as const]
  }),
)

const encodeLog = (address: Hex, eventName: string, args: EventArgs): EmittedLog => {
  const event = events.get(eventName)
  if (!event) throw new Error(`no event ${eventName}`)
  const encode = (inputs: readonly EventInput[]): Hex =>
    encodeAbiParameters(
      inputs,
      inputs.map(({ name }) => args[name ?? '']),
    )
  return { address, topics: [event.selector, ...event.indexed.map((input) => encode([input]))], data: encode(event.others) }
}
