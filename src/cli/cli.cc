#include "weft/node.h"
