/* SPDX-License-Identifier: Apache-2.0 */
/* The program agentdock-init, whole, inside of ours: pid 1 of a sandbox then needs no file of the
 * host. Read by runtime/init_memfd.c only. */
	.section .rodata.agentdock_init, "a"
	.globl agentdock_init_image
	.globl agentdock_init_image_bytes
	.hidden agentdock_init_image
	.hidden agentdock_init_image_bytes
	.balign 16
agentdock_init_image:
	.incbin "agentdock-init"
.Lend:
	.balign 8
agentdock_init_image_bytes:
	.quad .Lend - agentdock_init_image
	.section .note.GNU-stack, "", %progbits
