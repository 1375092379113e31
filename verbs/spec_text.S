/* SPDX-License-Identifier: Apache-2.0 */
/* verbs/spec.json, whole, inside of the program. Read by verbs/spec.c only. */
	.section .rodata.spec, "a"
	.globl spec_text
	.globl spec_text_end
	.hidden spec_text
	.hidden spec_text_end
spec_text:
	.incbin "verbs/spec.json"
spec_text_end:
	.section .note.GNU-stack, "", %progbits
