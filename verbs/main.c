/* SPDX-License-Identifier: Apache-2.0 */
/* agentdock-runtime: an OCI runtime. */
#include <stdio.h>

int main(void)
{
	puts("agentdock-runtime version " AGENTDOCK_VERSION);
	return 0;
}
