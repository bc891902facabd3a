// Holds SARIF logs against the published schema: node validate.mjs FOLDER-WITH-node_modules LOG…
// Prints what is wrong, one line each, and exits with 1 if anything is.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, ...logs] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const Ajv = require('ajv');
// The schema is written in the fourth draft of JSON Schema.
const ajv = new Ajv({ schemaId: 'auto', meta: false, allErrors: true });
ajv.addMetaSchema(require('ajv/lib/refs/json-schema-draft-04.json'));
const validate = ajv.compile(require('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json'));
for (const log of logs) {
  if (!validate(JSON.parse(readFileSync(log, 'utf8')))) {
    for (const error of validate.errors.slice(0, 20)) {
      console.log(`${log}: ${error.dataPath} ${error.message} ${JSON.stringify(error.params)}`);
    }
    process.exitCode = 1;
  }
}
