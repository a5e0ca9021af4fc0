import { expect, it } from 'vitest'
import { UsageError } from '../../../../src/lib/exit-codes.ts'
import { doctor } from '../../../../src/tools/doctor/doctor.ts'

it.each([
  [['--tiemout', '5s'], "'--tiemout' is not a flag. Did you mean --timeout? Try --help."],
  [['--nothing-like-it'], "'--nothing-like-it' is not a flag. Try --help."],
  [['--rpc'], "'--rpc' needs a value. Try --help."],
  [['https://one.example'], "'https://one.example' is not a flag. Try --help."],
  [['--rpc', ''], '--rpc is empty. Try --help.'],
  [['--timeout', '5'], '--timeout must be a time with a unit, from 100ms to 5m; it is "5"'],
  [['--timeout', '500'], '--timeout must have a unit, such as 500ms; it is "500"'],
  [['--timeout', '0s'], '--timeout must be a time with a unit, from 100ms to 5m; it is "0s"'],
  [['--env-file', '/nowhere'], '--env-file names a file that cannot be read (ENOENT): "/nowhere"'],
] as const)('the doctor refuses %j', async (args, message) => {
  const refused = doctor(args)
  await expect(refused).rejects.toBeInstanceOf(UsageError)
  await expect(refused).rejects.toThrow(message)
})
