#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use super::*;

/// `DRIFTLINE_WRITE_CRDS=1 cargo test -p driftline-kube committed` writes them.
#[test]
#[expect(clippy::disallowed_methods, reason = "cargo says where the tree is")]
fn the_committed_definitions_are_what_the_types_make() {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../deploy/crds");
    for (name, definition) in definitions() {
        let made = to_yaml(&definition).unwrap();
        let file = folder.join(name);
        if std::env::var_os("DRIFTLINE_WRITE_CRDS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &made).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), made, "`driftline operator crds` prints another {name}");
    }
}

#[test]
fn a_definition_reads_back_from_its_yaml() {
    for (_, definition) in definitions() {
        let yaml = to_yaml(&definition).unwrap();
        let read: CustomResourceDefinition = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, definition);
    }
}

/// Every field that the operator we follow has, as its users write it; only `apiVersion` is another.
#[test]
fn a_manifest_of_the_original_is_read_whole() {
    let manifest = r"
apiVersion: driftline.dev/v1alpha1
kind: DistributionTenant
metadata:
  name: acme
spec:
  distributionId: E2QWRUHAPOMQZL
  connectionGroupId: cg_abc
  domains:
    - domain: acme.example.com
    - domain: www.acme.example.com
  enabled: false
  parameters:
    - name: tenantName
      value: acme
  customizations:
    webAcl:
      action: override
      arn: arn:aws:wafv2:us-east-1:123456789012:global/webacl/a/b
    certificate:
      arn: arn:aws:acm:us-east-1:123456789012:certificate/abc
    geoRestrictions:
      restrictionType: whitelist
      locations: [DE, FR]
  managedCertificateRequest:
    validationTokenHost: self-hosted
    primaryDomainName: acme.example.com
    certificateTransparencyLoggingPreference: enabled
  tags:
    - key: team
      value: web
  dns:
    provider: route53
    hostedZoneId: Z1
    ttl: 60
    assumeRoleArn: arn:aws:iam::123456789012:role/dns
";
    let written: serde_json::Value = serde_saphyr::from_str(manifest).unwrap();
    let read: DistributionTenant = serde_saphyr::from_str(manifest).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap()["spec"], written["spec"]);
}

/// What the API server would refuse must be in the schema, because nothing behind it asks again.
#[test]
fn the_constraints_of_the_original_are_in_the_schema() {
    let schema = serde_json::to_value(DistributionTenant::crd()).unwrap();
    let spec = &schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(spec["distributionId"]["minLength"], 1);
    assert_eq!(spec["domains"]["minItems"], 1);
    assert_eq!(spec["enabled"]["default"], true);
    assert_eq!(spec["parameters"]["items"]["properties"]["name"]["maxLength"], 128);
    assert_eq!(spec["parameters"]["items"]["properties"]["name"]["pattern"], "^[a-zA-Z0-9-_]+$");
    assert_eq!(spec["parameters"]["items"]["properties"]["value"]["maxLength"], 256);
    let customizations = &spec["customizations"]["properties"];
    assert!(customizations["webAcl"]["x-kubernetes-validations"][0]["rule"].is_string());
    assert!(customizations["certificate"]["properties"]["arn"]["x-kubernetes-validations"][0]["rule"].is_string());
    assert_eq!(spec["dns"]["properties"]["ttl"]["maximum"], 172_800.0);
    assert_eq!(spec["dns"]["properties"]["ttl"]["default"], 300);
    assert!(schema["spec"]["versions"][0]["subresources"]["status"].is_object());
}
