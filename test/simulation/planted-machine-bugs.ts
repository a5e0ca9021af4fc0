import { map } from 'rxjs'
import { headNote } from '../../src/relay/notes/published-notes.ts'
import type { Tape, TapeWriter } from '../../src/relay/tape/tape.ts'
import type { ModifyInputs } from './simulation.ts'
import { wrap } from './tape-wrappers.ts'

/** Planted bugs about clocks, disks, endpoints and clients. The checker has to find every one. */

export const plantedMachineBugs: Readonly<Record<string, ModifyInputs>> = {
  'intervals follow the wall clock': (inputs) => {
    const { clock, wallTime } = inputs
    return { ...inputs, clock: { now: wallTime, schedule: clock.schedule } }
  },
  'numbers follow no clock': (inputs, simulation) => {
    const { startsAt } = simulation.clocks.environment
    simulation.numberingTime = () => startsAt
    return inputs
  },
  'a resume from a lost position goes on': (inputs) => ({ ...inputs, tape: wrap(inputs.tape, { runs: [] }) }),
  'what is open is evicted': (inputs, { tape, settings: { tapeBound = Number.POSITIVE_INFINITY } }) => {
    const find: Tape['find'] = (subject) => tape.find(subject).filter(({ seq }) => seq > tape.end() - tapeBound / 2)
    return { ...inputs, tape: wrap(inputs.tape, { find }) }
  },
  'the highest head that was pushed is kept': (inputs) => {
    const { link, writer } = inputs
    let highest = 0
    const append: TapeWriter['append'] = (batch) => {
      const head = batch.notes.note(headNote)
      if (head) batch.notes.set(headNote, { ...head, sealed: Math.max(highest, head.sealed ?? 0) })
      return writer.append(batch)
    }
    const readHead = map(<Signal extends { readonly type: string; readonly header?: unknown }>(signal: Signal): Signal => {
      const number = Number((signal.header as { number?: unknown } | null | undefined)?.number ?? 0)
      if (Number.isSafeInteger(number)) highest = Math.max(highest, number)
      return signal
    })
    return { ...inputs, writer: wrap(writer, { append }), link: link && ((linkInputs) => link(linkInputs).pipe(readHead)) }
  },
  'a client resumes at the newest message': (inputs, { client }) => {
    if (client) client.network.resumeAt = (since) => client.network.newestId ?? since
    return inputs
  },
  'a client says nothing of what the tape has lost': (inputs, { client }) => {
    if (client) client.takes = ({ type }) => type !== 'gap'
    return inputs
  },
  'only the first endpoint is asked': (inputs, { rpc }) => ({ ...inputs, request: rpc.requestOfFirst }),
}
