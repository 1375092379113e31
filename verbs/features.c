#include <errno.h>
#include "verbs/verbs.h"
int verb_features(struct request *request, struct err *e)
{
	(void)request;
	return err_set(e, ENOSYS, "features: is being written");
}
