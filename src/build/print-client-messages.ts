import '../protocol/history.ts'
import '../protocol/status.ts'
import { typescriptTypes } from '../docs/typescript-types.ts'

/** Prints `src/sdk/generated/messages.ts`: the types of everything that the relay sends. */
process.stdout.write(typescriptTypes())
