/** The text of a function of about 200 lines, as people write them: nested ifs, dictionaries, template strings. */
export function functionText(changed = 0): string {
  const part = (i: number) => `let name${i} := event.properties.name${i} ?? person.properties.name
fun send${i}(body, attempt) {
  let res := fetch(f'https://example.com/api/{event.uuid}/${i}?attempt={attempt}', {
    'method': 'POST',
    'headers': {
      'Content-Type': 'application/json',
      'Authorization': f'Bearer {inputs.token}'
    },
    'body': body
  })
  if (res.status >= 400) {
    if (res.status = 429 and attempt < ${i === 3 ? 3 + changed : 3}) {
      return send${i}(body, attempt + 1)
    } else if (res.status = 404) {
      return null
    }
    throw Error(f'Error from the service (status {res.status}): {res.body}')
  }
  return res.body
}
if (not empty(name${i}) and event.event in ['$pageview', '$identify']) {
  let payload := {
    'name': upper(trim(name${i})),
    'url': event.properties.$current_url,
    'groups': {'company': groups.company.id, 'plan': groups.company.properties.plan ?? 'free'},
    'list': arrayMap(x -> concat(x, '-', name${i}), ['a', 'b', 'c'])
  }
  for (let key, value in event.properties) {
    if (value != null and not (key like '$%')) {
      payload[key] := typeof(value) = 'object' ? jsonStringify(value) : toString(value)
    } else if (key = '$set') {
      for (let k, v in value) {
        payload[f'set_{k}'] := v
      }
    }
  }
  let answer := send${i}(payload, 1)
  print(f'sent {name${i}}: {answer.id ?? 'nothing'}', answer)
}
`;
  return Array.from({ length: 5 }, (_, i) => part(i)).join('\n');
}
