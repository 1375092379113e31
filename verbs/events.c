#include <errno.h>
#include "verbs/verbs.h"
int verb_events(struct request *request, struct err *e)
{
	(void)request;
	return err_set(e, ENOSYS, "events: is being written");
}
