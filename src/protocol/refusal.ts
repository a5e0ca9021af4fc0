import { z } from 'zod'
import { registerObject } from './schema-registry.ts'

export const ErrorRecord = registerObject('ErrorRecord', 'Why a request is refused: the error record of the Read API.', {
  code: z.int().describe('The HTTP status.'),
  reason: z.string().describe('A word for programs.'),
  message: z.string().describe('A sentence that names what is wrong and what to do.'),
  details: z.array(z.looseObject({ '@type': z.string().describe('stocktape/ and the reason.') })),
})
export type ErrorRecord = z.infer<typeof ErrorRecord>

/** Thrown to end a request. The message names the wrong parameter, and says what to do. */
export class Refusal extends Error {
  readonly code: number
  readonly reason: string
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: number, reason: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }

  get record(): ErrorRecord {
    const { code, reason, message, details } = this
    return { code, reason, message, details: [{ '@type': `stocktape/${reason}`, ...details }] }
  }
}
