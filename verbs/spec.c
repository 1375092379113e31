#include <errno.h>
#include "verbs/verbs.h"
int verb_spec(struct request *request, struct err *e)
{
	(void)request;
	return err_set(e, ENOSYS, "spec: is being written");
}
