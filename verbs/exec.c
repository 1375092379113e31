#include <errno.h>
#include "verbs/verbs.h"
int verb_exec(struct request *request, struct err *e)
{
	(void)request;
	return err_set(e, ENOSYS, "exec: is being written");
}
