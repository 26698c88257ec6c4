#include "weft/node.h"
#include "weft/vfs.h"
