"""Uses the S3 door as a program with boto3 does. Arguments: endpoint, access key, secret key, file with the authority or -."""

import hashlib
import io
import os
import sys
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, key, secret, authority = sys.argv[1:5]
verify = None if authority == "-" else authority


def client(key, secret, **more):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name="us-east-1",
        verify=verify,
        config=Config(retries={"max_attempts": 3}, s3={"addressing_style": "path"}, **more),
    )


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        found = error.response["Error"]["Code"]
        assert found == code or str(error.response["ResponseMetadata"]["HTTPStatusCode"]) == code, (found, code)
    else:
        raise AssertionError(f"{code} was expected")


s3 = client(key, secret)
s3.create_bucket(Bucket="b")
small = os.urandom(100_000)
s3.put_object(Bucket="b", Key="dir/small name+é", Body=small, ContentType="text/x-test")
got = s3.get_object(Bucket="b", Key="dir/small name+é")
assert got["Body"].read() == small and got["ContentType"] == "text/x-test"
head = s3.head_object(Bucket="b", Key="dir/small name+é")
assert head["ContentLength"] == 100_000 and head["ETag"] == got["ETag"]
part = s3.get_object(Bucket="b", Key="dir/small name+é", Range="bytes=10-19")
assert part["Body"].read() == small[10:20] and part["ResponseMetadata"]["HTTPStatusCode"] == 206
s3.put_object(Bucket="b", Key="empty", Body=b"")
assert s3.get_object(Bucket="b", Key="empty")["Body"].read() == b""
refused("NoSuchKey", s3.get_object, Bucket="b", Key="missing")
refused("404", s3.head_object, Bucket="b", Key="missing")
refused("PreconditionFailed", s3.put_object, Bucket="b", Key="empty", Body=b"x", IfNoneMatch="*")

# Parts, by the transfer manager as users have it, and by hand.
large = os.urandom(21 << 20)
transfer = TransferConfig(multipart_threshold=8 << 20, multipart_chunksize=8 << 20, max_concurrency=4)
s3.upload_fileobj(io.BytesIO(large), "b", "large", Config=transfer)
back = io.BytesIO()
s3.download_fileobj("b", "large", back, Config=transfer)
assert hashlib.sha256(back.getvalue()).digest() == hashlib.sha256(large).digest()
upload = s3.create_multipart_upload(Bucket="b", Key="odd", ContentType="text/plain")["UploadId"]
pieces = [b"a" * 5_500_001, b"b" * 5_242_881, b"c"]
tags = []
for number, piece in enumerate(pieces, 1):
    tag = s3.upload_part(Bucket="b", Key="odd", UploadId=upload, PartNumber=number, Body=piece)["ETag"]
    tags.append({"PartNumber": number, "ETag": tag})
assert [p["Size"] for p in s3.list_parts(Bucket="b", Key="odd", UploadId=upload)["Parts"]] == [len(p) for p in pieces]
refused("InvalidPart", s3.complete_multipart_upload, Bucket="b", Key="odd", UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 7, "ETag": tags[0]["ETag"]}]})
s3.complete_multipart_upload(Bucket="b", Key="odd", UploadId=upload, MultipartUpload={"Parts": tags})
assert s3.get_object(Bucket="b", Key="odd")["Body"].read() == b"".join(pieces)
assert s3.head_object(Bucket="b", Key="odd")["ContentType"] == "text/plain"
given_up = s3.create_multipart_upload(Bucket="b", Key="odd2")["UploadId"]
s3.abort_multipart_upload(Bucket="b", Key="odd2", UploadId=given_up)
refused("NoSuchUpload", s3.upload_part, Bucket="b", Key="odd2", UploadId=given_up, PartNumber=1, Body=b"x")

# Lists: paging, folding, escapes.
for number in range(7):
    s3.put_object(Bucket="l", Key=f"d{number % 2}/f{number}", Body=b"x")
s3.put_object(Bucket="l", Key="top", Body=b"x")
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="l", PaginationConfig={"PageSize": 3})
names = [o["Key"] for page in pages for o in page.get("Contents", [])]
assert names == ["d0/f0", "d0/f2", "d0/f4", "d0/f6", "d1/f1", "d1/f3", "d1/f5", "top"], names
folded = s3.list_objects_v2(Bucket="l", Delimiter="/")
assert [p["Prefix"] for p in folded["CommonPrefixes"]] == ["d0/", "d1/"]
assert [o["Key"] for o in folded["Contents"]] == ["top"]
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="l", Delimiter="/", PaginationConfig={"PageSize": 1})
found = [(x.get("CommonPrefixes", [{}])[0].get("Prefix") or x["Contents"][0]["Key"]) for x in pages]
assert found == ["d0/", "d1/", "top"], found
assert s3.list_objects_v2(Bucket="l", Prefix="d1/f3")["KeyCount"] == 1
assert s3.list_objects_v2(Bucket="nothing")["KeyCount"] == 0
assert [o["Key"] for o in s3.list_objects(Bucket="b", Prefix="dir/")["Contents"]] == ["dir/small name+é"]
assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["b", "l"]

# Copies, removal, presigned addresses.
s3.copy_object(Bucket="b", Key="copy", CopySource={"Bucket": "b", "Key": "large"})
assert s3.head_object(Bucket="b", Key="copy")["ContentLength"] == len(large)
# Copied in parts, as clients do with what is large.
s3.copy({"Bucket": "b", "Key": "large"}, "b", "large2", Config=transfer)
assert s3.get_object(Bucket="b", Key="large2")["Body"].read() == large
s3.delete_object(Bucket="b", Key="large2")
refused("NotImplemented", s3.put_object, Bucket="b", Key="x", Body=b"x", ServerSideEncryption="AES256")
assert s3.get_object_tagging(Bucket="b", Key="large")["TagSet"] == []
# boto3 presigns with an older signature unless it is told otherwise.
v4 = client(key, secret, signature_version="s3v4")
address = v4.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "dir/small name+é"})
if verify is None:
    assert urllib.request.urlopen(address).read() == small
refused("BucketNotEmpty", s3.delete_bucket, Bucket="l")
gone = s3.delete_objects(Bucket="l", Delete={"Objects": [{"Key": n} for n in names]})
assert len(gone["Deleted"]) == 8 and s3.list_objects_v2(Bucket="l")["KeyCount"] == 0
s3.delete_bucket(Bucket="l")
s3.delete_object(Bucket="b", Key="copy")
s3.delete_object(Bucket="b", Key="copy")
refused("404", s3.head_object, Bucket="b", Key="copy")

# Strangers.
refused("SignatureDoesNotMatch", client(key, "0" * 64).put_object, Bucket="b", Key="x", Body=b"x")
refused("InvalidAccessKeyId", client("nobody", secret).get_object, Bucket="b", Key="empty")
print("ok")
