// The colour of a name: the same one wherever the name stands.

/** Returns the hue of a name, in degrees. @param {string} name */
export function hue(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 360;
  return sum;
}
