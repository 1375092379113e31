#include <errno.h>
#include "verbs/verbs.h"
int verb_update(struct request *request, struct err *e)
{
	(void)request;
	return err_set(e, ENOSYS, "update: is being written");
}
