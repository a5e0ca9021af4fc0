import { z } from 'zod'

/** Schemas with a name in the published documents, which refer to them by that name. */
export const schemaRegistry = z.registry<{ readonly id: string }>()

export function registerSchema<Schema extends z.ZodType>(id: string, description: string, schema: Schema): Schema {
  const described = schema.describe(description)
  schemaRegistry.add(described, { id })
  return described
}

export const registerObject = <Fields extends z.ZodRawShape>(id: string, description: string, fields: Fields) =>
  registerSchema(id, description, z.object(fields))

export const messageSchema = <Type extends string, Fields extends z.ZodRawShape>(type: Type, description: string, fields: Fields) =>
  registerObject(type, description, { type: z.literal(type), ...fields })
