import { z } from 'zod'

/** The error record of the Read API, used for every refusal. */
export const ErrorRecord = z.object({
  code: z.int(),
  message: z.string(),
  details: z.array(z.looseObject({ '@type': z.string() })),
})
export type ErrorRecord = z.infer<typeof ErrorRecord>

/** What a client asked for cannot be given; says which word was wrong and what to do. */
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
    return {
      code: this.code,
      message: this.message,
      details: [{ '@type': `stocktape/${this.reason}`, ...this.details }],
    }
  }
}
