import { isDeepStrictEqual } from 'node:util'
import type { IngestState } from './ingest-state.ts'
import type { Moment } from './moment.ts'
import { forAllTokens, NOTHING, type Publication } from './publication.ts'

/** The session of the market at chain time, if it is another one than the last published. */
export function applySession(state: IngestState, { time }: Moment): readonly Publication[] {
  const { sessionAt, chainTime } = state
  if (!sessionAt || !chainTime) return NOTHING
  const session = sessionAt(chainTime.timestamp)
  if (isDeepStrictEqual(session, state.session)) return NOTHING
  state.session = session
  return [forAllTokens({ type: 'session', ...session }, time)]
}
