import type { Hex } from '../../src/lib/hex.ts'
import type { LogContent } from './simulated-block.ts'
import { laterToken, listedTokens } from './simulated-tokens.ts'
import {
  multiplierUpdated,
  NO_CAP,
  supplyCapUpdated,
  uiMultiplierUpdateCancelled,
  uiMultiplierUpdated,
} from './token-event-logs.ts'

/** A call to a contract. Which logs it emits depends on the contract's state where the transaction lands. */
export type ContractCall = { readonly address: Hex } & (
  | { readonly call: 'setMultiplier' | 'setMultiplierOldStyle'; readonly to: bigint }
  /** In seconds. */
  | { readonly call: 'schedule'; readonly to: bigint; readonly at: number }
  | { readonly call: 'cancel' }
  | { readonly call: 'setCap'; readonly to: bigint }
)

/** The state of a token contract. */
export type ContractState = {
  readonly multiplier: bigint
  readonly schedule: { readonly to: bigint; readonly at: number } | null
  readonly cap: bigint
  readonly paused: readonly number[]
  /** Fields of the record that logs have changed since the simulation began. */
  readonly fields: Readonly<Record<string, unknown>>
}
export type ContractStates = ReadonlyMap<Hex, ContractState>

const WAD_PER_HUNDREDTH = 10n ** 16n
const initialState = { schedule: null, cap: NO_CAP, paused: [], fields: {} }

export const initialContracts: ContractStates = new Map(
  [...listedTokens, laterToken].map(({ address, hundredths }) => [
    address,
    { ...initialState, multiplier: hundredths * WAD_PER_HUNDREDTH },
  ]),
)

/** A schedule takes effect when its time comes, without a log and without a write. */
export const multiplierAt = ({ multiplier, schedule }: ContractState, second: number): bigint =>
  schedule && schedule.at <= second ? schedule.to : multiplier

/** Applies one log or one call, in a block of this time. */
export function execute(
  states: ContractStates,
  entry: LogContent | ContractCall,
  second: number,
): { readonly states: ContractStates; readonly contents: readonly LogContent[] } {
  const before = states.get(entry.address)
  if (!before) return { states, contents: 'call' in entry ? [] : [entry] }
  const { state, contents } =
    'call' in entry ? executeCall(before, entry, second) : { state: applyLog(before, entry), contents: [entry] }
  return { states: state === before ? states : new Map(states).set(entry.address, state), contents }
}

function executeCall(
  state: ContractState,
  call: ContractCall,
  second: number,
): { readonly state: ContractState; readonly contents: readonly LogContent[] } {
  const { address } = call
  const live = state.schedule && state.schedule.at > second ? state.schedule : null
  const multiplier = multiplierAt(state, second)
  const ended = live ? [uiMultiplierUpdateCancelled(address, live.to, live.at)] : []
  switch (call.call) {
    case 'setMultiplier':
    case 'setMultiplierOldStyle': {
      const oldStyle = multiplierUpdated(address, call.to)
      const contents =
        call.call === 'setMultiplier' ? [...ended, oldStyle, uiMultiplierUpdated(address, multiplier, call.to, second)] : [oldStyle]
      return { state: { ...state, multiplier: call.to, schedule: null }, contents }
    }
    case 'schedule': {
      // The contract rejects a schedule whose time has passed.
      if (call.at <= second) return { state, contents: [] }
      const schedule = { to: call.to, at: call.at }
      const contents = [...ended, uiMultiplierUpdated(address, multiplier, call.to, call.at)]
      return { state: { ...state, multiplier, schedule }, contents }
    }
    case 'cancel':
      return { state: live ? { ...state, schedule: null } : state, contents: ended }
    case 'setCap':
      return { state: { ...state, cap: call.to }, contents: [supplyCapUpdated(address, state.cap, call.to)] }
  }
}

function applyLog(state: ContractState, { tokenEvent }: LogContent): ContractState {
  switch (tokenEvent?.event) {
    case 'Paused':
      return { ...state, paused: [...new Set([...state.paused, ...tokenEvent.features])].sort() }
    case 'Unpaused':
      return { ...state, paused: state.paused.filter((feature) => !tokenEvent.features.includes(feature)) }
    case 'FieldUpdated':
      return { ...state, fields: { ...state.fields, [tokenEvent.field]: tokenEvent.value } }
    default:
      return state
  }
}
