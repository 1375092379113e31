/* SPDX-License-Identifier: Apache-2.0 */
/* verbs/spec.json, whole, inside of the program. Read by verbs/spec.c only. */
	.section .rodata.spec, "a"
	.globl spec_text
	.globl spec_text_bytes
	.hidden spec_text
	.hidden spec_text_bytes
spec_text:
	.incbin "verbs/spec.json"
.Lend:
	.balign 8
spec_text_bytes:
	.quad .Lend - spec_text
	.section .note.GNU-stack, "", %progbits
