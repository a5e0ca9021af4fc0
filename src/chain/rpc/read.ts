import type { Observable } from 'rxjs'
import { observe } from '../../async-loop.ts'

/** One read for each subscriber; the end of the subscription aborts it. */
export const read = <T>(request: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  observe(async (emit, signal) => emit(await request(signal)))
