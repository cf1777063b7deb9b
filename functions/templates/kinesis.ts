import { destination, secret, text } from './inputs.ts';
import { input } from './parts.ts';

export const KINESIS = destination('aws-kinesis', {
  id: 'template-aws-kinesis',
  name: 'AWS Kinesis',
  description: 'Puts a record for each event into a stream of Amazon Kinesis.',
  category: ['Analytics'],
  hog: `let partition := inputs.aws_kinesis_partition_key
let answer := fetch(f'https://kinesis.{inputs.aws_region}.amazonaws.com', {
  'method': 'POST',
  'headers': {'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': 'Kinesis_20131202.PutRecord'},
  'body': {
    'StreamName': inputs.aws_kinesis_stream_name,
    'PartitionKey': empty(partition) ? generateUUIDv4() : partition,
    'Data': base64Encode(jsonStringify(inputs.payload))
  },
  'aws_sigv4': {
    'service': 'kinesis',
    'region': inputs.aws_region,
    'access_key_id_input': 'aws_access_key_id',
    'secret_access_key_input': 'aws_secret_access_key'
  }
})
if (answer.status >= 200 and answer.status < 300) {
  print('Event sent successfully!')
} else {
  throw Error(f'Error from {inputs.aws_region}.amazonaws.com (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    secret('aws_access_key_id', 'Access key ID', {
      description: 'Of a user of AWS that may put records into the stream.',
    }),
    secret('aws_secret_access_key', 'Secret access key', { description: 'The other half of the key.' }),
    text('aws_region', 'Region', {
      description: 'The region of the stream, such as us-east-1.',
      required: true,
      default: 'us-east-1',
    }),
    text('aws_kinesis_stream_name', 'Stream', { description: 'The name of the stream.', required: true }),
    text('aws_kinesis_partition_key', 'Partition key', {
      description: 'Records of the same key keep their order. Without one, each record has its own.',
      default: '{event.uuid}',
    }),
    input({
      key: 'payload',
      type: 'json',
      label: 'Record',
      description: 'What each record holds.',
      default: { event: '{event}', person: '{person}' },
    }),
  ],
});
