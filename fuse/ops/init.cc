#include "fuse/ops/ops.h"

namespace weft {

void op_init(void*, fuse_conn_info* connection) {
  const unsigned wanted =
      FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;
  // Contents never change, so a changed time is no reason to drop pages; splice was slower than copying.
  const unsigned unwanted = FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                            FUSE_CAP_SPLICE_MOVE | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS;
  connection->want = (connection->want | (connection->capable & wanted)) & ~unwanted;
  connection->max_read = kReadBytesMax;
  connection->max_write = kReadBytesMax;
  // Large, so that reads that wait for other nodes do not hold up local reads.
  connection->max_background = 512;
  connection->congestion_threshold = 384;
}

}  // namespace weft
