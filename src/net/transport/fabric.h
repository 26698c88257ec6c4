// libfabric's objects as owners, and its codes as Errors.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>
#include <string_view>

#include "weft/result.h"

namespace weft::net {

// Closes any of libfabric's objects.
struct CloseFid {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using FidPtr = std::unique_ptr<Object, CloseFid>;

// "WHAT: what libfabric says", with the Errc that fits. `code` is negative, as libfabric's calls return it.
Error fabric_error(long code, std::string_view what);

// Calls one of libfabric's makers, such as fi_domain, and owns what it made.
template <class Object, class Make>
Result<FidPtr<Object>> make_fid(std::string_view what, Make make) {
  Object* made = nullptr;
  if (const int failed = make(&made); failed != 0) return fabric_error(failed, what);
  return FidPtr<Object>(made);
}

}  // namespace weft::net
