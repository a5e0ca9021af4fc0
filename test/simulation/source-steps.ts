import { subscribe } from 'node:diagnostics_channel'
import { registerHooks } from 'node:module'

const CHANNEL = 'source steps'
const STATE_FILE = /\/src\/relay\/chain\/source\/source-evidence\.ts$/

/** How often each kind of evidence came in each state of the source: `link trust pending evidence`. */
export type SourceSteps = ReadonlyMap<string, number>

/** Counts what the state machine of the source is asked, if it is loaded later. */
export function countSourceSteps(): SourceSteps {
  const steps = new Map<string, number>()
  subscribe(CHANNEL, (step) => steps.set(String(step), (steps.get(String(step)) ?? 0) + 1))
  registerHooks({
    load: (url, context, nextLoad) =>
      STATE_FILE.test(url)
        ? { format: 'module', shortCircuit: true, source: countingModule(`${url}?counted`) }
        : nextLoad(url, context),
  })
  return steps
}

/** Stands in for the module of the state machine: the same exports, but `next` is counted. */
const countingModule = (url: string): string => `
  import { channel } from 'node:diagnostics_channel'
  import * as original from '${url}'
  export * from '${url}'
  const steps = channel('${CHANNEL}')
  export const next = (state, evidence, at) => {
    steps.publish([state.link, state.trust, state.pending, evidence.type].join(' '))
    return original.next(state, evidence, at)
  }`
