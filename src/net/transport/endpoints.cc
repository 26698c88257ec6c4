#include "net/transport/endpoints.h"

namespace weft::net {

long post_to(fid_ep* endpoint, fi_addr_t peer, Operation& operation) {
  if (operation.kind == OperationKind::send) {
    auto& message = static_cast<MessageOperation&>(operation);
    if (message.data == 0)
      return fi_send(endpoint, message.buffer.bytes.data(), message.length, message.buffer.descriptor, peer,
                     &message.context);
    return fi_senddata(endpoint, message.buffer.bytes.data(), message.length, message.buffer.descriptor, message.data,
                       peer, &message.context);
  }
  auto& read = static_cast<ReadOperation&>(operation);
  return fi_read(endpoint, read.landing().bytes().data() + read.at, read.length,
                 read.landing().registration().descriptor(), peer, read.address, read.key, &read.context);
}

long post_receive_on(fid_ep* endpoint, MessageOperation& receive) {
  return fi_recv(endpoint, receive.buffer.bytes.data(), receive.buffer.bytes.size(), receive.buffer.descriptor,
                 FI_ADDR_UNSPEC, &receive.context);
}

}  // namespace weft::net
