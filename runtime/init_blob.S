/* SPDX-License-Identifier: Apache-2.0 */
/* The program agentdock-init, whole, inside of ours: pid 1 of a sandbox then needs no file of the
 * host. Read by runtime/init_memfd.c only. */
	.section .rodata.agentdock_init, "a"
	.globl agentdock_init_image
	.globl agentdock_init_image_end
	.hidden agentdock_init_image
	.hidden agentdock_init_image_end
	.balign 16
agentdock_init_image:
	.incbin "agentdock-init"
agentdock_init_image_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
