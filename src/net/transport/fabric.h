// Owning pointers for libfabric's objects, and its error codes as Errors.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string_view>

#include "weft/result.h"

namespace weft::net {

// Closes an object of libfabric of any type.
struct CloseFid {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using FidPtr = std::unique_ptr<Object, CloseFid>;

// Returns an error "WHAT: TEXT" with libfabric's text of `code` and the Errc that fits. `code` may have either sign:
// libfabric's calls return negative numbers, its queues positive ones.
Error fabric_error(long code, std::string_view what);

// Calls a libfabric function that makes an object, such as fi_domain, and owns the object.
template <class Object, class Make>
Result<FidPtr<Object>> make_fid(std::string_view what, Make make) {
  Object* made = nullptr;
  if (const int failed = make(&made); failed != 0) return fabric_error(failed, what);
  return FidPtr<Object>(made);
}

}  // namespace weft::net
